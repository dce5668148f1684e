"""Causal language modelling with the Trainer: bf16, gradient checkpointing, accumulation, fused AdamW."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Blocks(torch.utils.data.Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, index):
        ids = torch.randint(50257, (256,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": ids, "labels": ids.clone()}


model = GPT2LMHeadModel(GPT2Config(n_layer=6, n_embd=384, n_head=6))
arguments = TrainingArguments(
    output_dir="out", per_device_train_batch_size=4, gradient_accumulation_steps=4, bf16=True, max_steps=20,
    gradient_checkpointing=True, optim="adamw_torch_fused", lr_scheduler_type="cosine", warmup_steps=5,
    logging_steps=5, save_strategy="steps", save_steps=10, report_to=[], dataloader_num_workers=2,
)  # fmt: skip
Trainer(model=model, args=arguments, train_dataset=Blocks()).train()
