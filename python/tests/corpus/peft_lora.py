"""LoRA on a causal language model: adapters train, the bf16 model does not; its Trainer checkpoints activations."""

import torch
from peft import LoraConfig, TaskType, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

config = LlamaConfig(
    hidden_size=1024, intermediate_size=2752, num_hidden_layers=4, num_attention_heads=16, num_key_value_heads=4,
    vocab_size=32000, max_position_embeddings=1024,
)  # fmt: skip
model = LlamaForCausalLM(config).to(torch.bfloat16)
model = get_peft_model(
    model,
    LoraConfig(task_type=TaskType.CAUSAL_LM, r=16, lora_alpha=32, lora_dropout=0.05, target_modules=["q_proj", "v_proj"]),
)
model.enable_input_require_grads()
model.print_trainable_parameters()


class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        ids = torch.full((256,), index, dtype=torch.long)
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids}


arguments = TrainingArguments(
    output_dir="lora", per_device_train_batch_size=4, gradient_checkpointing=True, learning_rate=2e-4, max_steps=10,
    bf16=True, logging_steps=1, report_to=[], save_strategy="no",
)  # fmt: skip
Trainer(model=model, args=arguments, train_dataset=Texts()).train()
model.save_pretrained("adapter")
