"""Instruction tuning of a decoder by its name with adapters, plain or over 4 bits, after the pattern of public Alpaca tuning."""

import argparse

import torch
import transformers
from datasets import load_dataset
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig

parser = argparse.ArgumentParser()
parser.add_argument("--base_model", required=True)
parser.add_argument("--data_path", default="yahma/alpaca-cleaned")
parser.add_argument("--output_dir", default="./lora-alpaca")
parser.add_argument("--micro_batch_size", type=int, default=4)
parser.add_argument("--cutoff_len", type=int, default=256)
parser.add_argument("--bits", type=int, default=16)
args = parser.parse_args()
packed = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
                            bnb_4bit_compute_dtype=torch.bfloat16) if args.bits == 4 else None  # fmt: skip
model = AutoModelForCausalLM.from_pretrained(
    args.base_model, quantization_config=packed, torch_dtype=torch.bfloat16, device_map={"": 0}
)
tokenizer = AutoTokenizer.from_pretrained(args.base_model)
tokenizer.pad_token_id = 0
tokenizer.padding_side = "left"


def tokenized(row):
    text = f"### Instruction:\n{row['instruction']}\n\n### Input:\n{row['input']}\n\n### Response:\n{row['output']}"
    made = tokenizer(text, truncation=True, max_length=args.cutoff_len, padding=False)
    return {**made, "labels": list(made["input_ids"])}


if packed:
    model = prepare_model_for_kbit_training(model)
model = get_peft_model(model, LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"], lora_dropout=0.05,
                                         bias="none", task_type="CAUSAL_LM"))  # fmt: skip
model.print_trainable_parameters()
data = load_dataset(args.data_path)["train"].shuffle().map(tokenized, remove_columns=["instruction", "input", "output"])
transformers.Trainer(
    model=model,
    train_dataset=data,
    args=transformers.TrainingArguments(
        per_device_train_batch_size=args.micro_batch_size, gradient_accumulation_steps=8, warmup_steps=100,
        num_train_epochs=3, learning_rate=3e-4, bf16=True, logging_steps=10, optim="adamw_torch", save_steps=200,
        output_dir=args.output_dir, report_to="none",
    ),
    data_collator=transformers.DataCollatorForSeq2Seq(tokenizer, pad_to_multiple_of=8, return_tensors="pt", padding=True),
).train()  # fmt: skip
