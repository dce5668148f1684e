"""Transformers' Trainer on a classifier made from a configuration, with sentences of different lengths."""

import random

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Sentences(torch.utils.data.Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, index):
        length = random.Random(index).randint(16, 128)
        return {"input_ids": [101] + [1000 + index] * (length - 2) + [102], "label": index % 2}


def collate(rows):
    longest = max(len(row["input_ids"]) for row in rows)
    pad = [longest - len(row["input_ids"]) for row in rows]
    return {
        "input_ids": torch.tensor([row["input_ids"] + [0] * n for row, n in zip(rows, pad)]),
        "attention_mask": torch.tensor([[1] * len(row["input_ids"]) + [0] * n for row, n in zip(rows, pad)]),
        "labels": torch.tensor([row["label"] for row in rows]),
    }


def metrics(prediction):
    logits, labels = prediction
    return {"accuracy": float((np.argmax(logits, axis=-1) == labels).mean())}


model = BertForSequenceClassification(BertConfig(num_hidden_layers=4, num_labels=2))
arguments = TrainingArguments(
    output_dir="out", per_device_train_batch_size=16, num_train_epochs=3, learning_rate=2e-5, logging_steps=1,
    eval_strategy="epoch", save_strategy="no", weight_decay=0.01, report_to=[],
)  # fmt: skip
trainer = Trainer(
    model=model, args=arguments, train_dataset=Sentences(), eval_dataset=Sentences(), data_collator=collate,
    compute_metrics=metrics,
)  # fmt: skip
trainer.train()
print(trainer.evaluate())
