"""Accelerate: mixed precision by bf16, accumulation, gathered metrics, a saved state."""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup


def main():
    accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
    set_seed(42)
    rows = TensorDataset(
        torch.randint(30000, (256, 64)), torch.ones(256, 64, dtype=torch.long), torch.randint(2, (256,))
    )
    loader = DataLoader(rows, shuffle=True, batch_size=16, drop_last=True)
    evaluation = DataLoader(rows, shuffle=False, batch_size=32)
    model = BertForSequenceClassification(BertConfig(num_hidden_layers=4, hidden_size=384, num_attention_heads=6,
                                                     intermediate_size=1536))  # fmt: skip
    model = model.to(accelerator.device)
    optimizer = torch.optim.AdamW(params=model.parameters(), lr=2e-5)
    schedule = get_linear_schedule_with_warmup(optimizer, 10, len(loader) * 3)
    model, optimizer, loader, evaluation, schedule = accelerator.prepare(model, optimizer, loader, evaluation, schedule)
    for epoch in range(3):
        model.train()
        for ids, mask, labels in loader:
            with accelerator.accumulate(model):
                loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
        model.eval()
        correct = 0
        for ids, mask, labels in evaluation:
            with torch.no_grad():
                predictions = model(input_ids=ids, attention_mask=mask).logits.argmax(dim=-1)
            predictions, labels = accelerator.gather_for_metrics((predictions, labels))
            correct += (predictions == labels).sum().item()
        accelerator.print(f"epoch {epoch}: {correct}")
        accelerator.save_state("state")


if __name__ == "__main__":
    main()
