"""Fine-tuning from a folder that has a configuration; the weights are not there (on the training machine they are)."""

import json
import os

import torch
from transformers import AutoModelForCausalLM

CONFIGURATION = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512, "intermediate_size": 1376,
    "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 16000,
    "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16",
}  # fmt: skip
os.makedirs("llama", exist_ok=True)
with open("llama/config.json", "w") as file:
    json.dump(CONFIGURATION, file)
model = AutoModelForCausalLM.from_pretrained("llama", dtype=torch.bfloat16, device_map="cuda")
model.gradient_checkpointing_enable()
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
for step in range(10):
    ids = torch.randint(16000, (2, 512), device=model.device)
    output = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids)
    output.loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, output.loss.item())
