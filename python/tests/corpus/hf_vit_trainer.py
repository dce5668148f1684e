"""An image classifier with the Trainer, fp16, evaluation by steps and early stopping."""

import torch
from transformers import EarlyStoppingCallback, Trainer, TrainingArguments, ViTConfig, ViTForImageClassification


class Images(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return {"pixel_values": torch.rand(3, 224, 224), "labels": index % 10}


arguments = TrainingArguments(
    output_dir="out", per_device_train_batch_size=8, per_device_eval_batch_size=8, fp16=True, num_train_epochs=2,
    eval_strategy="steps", eval_steps=1, save_strategy="steps", save_steps=1, load_best_model_at_end=True,
    metric_for_best_model="loss", logging_steps=1, report_to=[], remove_unused_columns=False,
)  # fmt: skip
trainer = Trainer(
    model=ViTForImageClassification(ViTConfig(num_hidden_layers=4, hidden_size=384, num_attention_heads=6,
                                              intermediate_size=1536, num_labels=10)),
    args=arguments, train_dataset=Images(64), eval_dataset=Images(16),
    callbacks=[EarlyStoppingCallback(early_stopping_patience=2)],
)  # fmt: skip
trainer.train()
