"""Fine-tuning as courses on Transformers have it: model, tokenizer and data by their names on the hub, none of them
here."""

from datasets import load_dataset
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
)

raw = load_dataset("nyu-mll/glue", "sst2")
tokenizer = AutoTokenizer.from_pretrained("google-bert/bert-base-uncased")
data = raw.map(lambda rows: tokenizer(rows["sentence"], truncation=True), batched=True)
model = AutoModelForSequenceClassification.from_pretrained("google-bert/bert-base-uncased", num_labels=2)
arguments = TrainingArguments("out", per_device_train_batch_size=32, report_to="none")
Trainer(
    model, arguments, train_dataset=data["train"], eval_dataset=data["validation"], processing_class=tokenizer,
    data_collator=DataCollatorWithPadding(tokenizer),
).train()  # fmt: skip
