"""A sequence-to-sequence model in a loop of one's own, Adafactor, generation in the evaluation."""

import torch
from torch.utils.data import DataLoader
from transformers import T5Config, T5ForConditionalGeneration, get_linear_schedule_with_warmup
from transformers.optimization import Adafactor

device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
config = T5Config(
    d_model=256, d_ff=1024, d_kv=64, num_layers=4, num_heads=4, vocab_size=8000, decoder_start_token_id=0
)
model = T5ForConditionalGeneration(config).to(device)
rows = [{"input_ids": torch.randint(1, 8000, (64,)), "labels": torch.randint(1, 8000, (32,))} for _ in range(128)]
loader = DataLoader(rows, batch_size=8, shuffle=True)
optimizer = Adafactor(model.parameters(), scale_parameter=False, relative_step=False, lr=1e-3)
schedule = get_linear_schedule_with_warmup(optimizer, 2, 3 * len(loader))
for epoch in range(3):
    model.train()
    for batch in loader:
        batch = {key: value.to(device) for key, value in batch.items()}
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        print(f"{epoch}: {loss.item():.3f}")
    model.eval()
    with torch.no_grad():
        print(model.generate(batch["input_ids"][:2], max_new_tokens=5))
