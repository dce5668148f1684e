"""Fine-tuning of a model by its name on the hub, which has to be downloaded with its configuration and its tokenizer."""

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("some-laboratory/english-uncased-base")
model = AutoModelForSequenceClassification.from_pretrained("some-laboratory/english-uncased-base", num_labels=2).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
for _ in range(10):
    batch = tokenizer(["an example"] * 16, return_tensors="pt").to("cuda")
    loss = model(**batch, labels=torch.zeros(16, dtype=torch.long, device="cuda")).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
