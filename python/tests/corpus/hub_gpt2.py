"""A loop of one's own over GPT-2 by its name, with its own tokenizer's class."""

import torch
from transformers import GPT2LMHeadModel, GPT2Tokenizer

tokenizer = GPT2Tokenizer.from_pretrained("gpt2")
tokenizer.pad_token = tokenizer.eos_token
assert len(tokenizer) == 50257
model = GPT2LMHeadModel.from_pretrained("gpt2").cuda()
optimizer = torch.optim.AdamW(model.parameters())
text = ["once upon a time there was a model"] * 4
batch = tokenizer(text, return_tensors="pt", padding="max_length", max_length=64, truncation=True).to("cuda")
for _ in range(4):
    model(**batch, labels=batch["input_ids"]).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
