"""After the pattern of Transformers' example scripts: a task, a model and data by their names, and all options of Trainer."""

from dataclasses import dataclass

from datasets import load_dataset
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForQuestionAnswering,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    DataCollatorForSeq2Seq,
    DataCollatorForTokenClassification,
    DataCollatorWithPadding,
    HfArgumentParser,
    Trainer,
    TrainingArguments,
)


@dataclass
class Asked:
    task: str = "glue"
    model_name_or_path: str = "bert-base-cased"
    dataset_name: str = "nyu-mll/glue"
    dataset_config_name: str = None
    train_file: str = None
    text_column: str = "text"
    summary_column: str = "highlights"
    max_seq_length: int = 128


asked, arguments = HfArgumentParser((Asked, TrainingArguments)).parse_args_into_dataclasses()
tokenizer = AutoTokenizer.from_pretrained(asked.model_name_or_path)
if asked.train_file:
    raw = load_dataset("csv", data_files={"train": asked.train_file})
else:
    raw = load_dataset(asked.dataset_name, asked.dataset_config_name)
longest = {"truncation": True, "max_length": asked.max_seq_length}


def grouped(rows):
    joined = [token for ids in tokenizer(rows[asked.text_column])["input_ids"] for token in ids]
    size = asked.max_seq_length
    return {"input_ids": [joined[at : at + size] for at in range(0, len(joined) // size * size, size)]}


def tagged(rows):
    made = tokenizer(rows["tokens"], is_split_into_words=True, **longest)
    made["labels"] = [
        [-100 if word is None else tags[word] for word in made.word_ids(row)] for row, tags in enumerate(rows["ner_tags"])
    ]
    return made


def answered(rows):
    made = tokenizer(rows["question"], rows["context"], padding="max_length", return_offsets_mapping=True, **longest)
    made.pop("offset_mapping")
    made["start_positions"] = made["end_positions"] = [0] * len(rows["question"])
    return made


def summed(rows):
    made = tokenizer(rows[asked.text_column], **longest)
    made["labels"] = tokenizer(text_target=rows[asked.summary_column], max_length=64, truncation=True)["input_ids"]
    return made


def classified(rows):
    pair = [rows[name] for name in ("sentence1", "sentence", "text", "sentence2") if name in rows]
    return tokenizer(*pair[:2], **longest)


name = asked.model_name_or_path
if asked.task in ("clm", "mlm"):
    kind, prepare = AutoModelForCausalLM if asked.task == "clm" else AutoModelForMaskedLM, grouped
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    collate = DataCollatorForLanguageModeling(tokenizer, mlm=asked.task == "mlm")
elif asked.task == "ner":
    kind, prepare, collate = AutoModelForTokenClassification, tagged, DataCollatorForTokenClassification(tokenizer)
elif asked.task == "qa":
    kind, prepare, collate = AutoModelForQuestionAnswering, answered, None
elif asked.task == "summarization":
    kind, prepare = AutoModelForSeq2SeqLM, summed
    collate = DataCollatorForSeq2Seq(tokenizer)
else:
    kind, prepare, collate = AutoModelForSequenceClassification, classified, DataCollatorWithPadding(tokenizer)
labels = {"num_labels": raw["train"].features["ner_tags"].feature.num_classes} if asked.task == "ner" else {}
model = kind.from_pretrained(name, **labels)
keep = [column for column in raw["train"].column_names if column == "label"]
data = raw.map(prepare, batched=True, remove_columns=[c for c in raw["train"].column_names if c not in keep])
trainer = Trainer(model=model, args=arguments, train_dataset=data["train"], data_collator=collate, processing_class=tokenizer)
if arguments.do_train:
    trainer.train()
    trainer.save_model()
