"""LoRA on a text-conditioned UNet: a frozen autoencoder makes latents in bf16, a frozen encoder's states condition it."""

import torch
from diffusers import AutoencoderKL, DDPMScheduler, UNet2DConditionModel
from peft import LoraConfig
from transformers import CLIPTextConfig, CLIPTextModel

device, dtype = torch.device("cuda"), torch.bfloat16
text = CLIPTextModel(CLIPTextConfig(hidden_size=256, intermediate_size=1024, num_attention_heads=4, num_hidden_layers=4))
vae = AutoencoderKL(block_out_channels=(32, 64), latent_channels=4, down_block_types=("DownEncoderBlock2D",) * 2,
                    up_block_types=("UpDecoderBlock2D",) * 2, norm_num_groups=16)  # fmt: skip
unet = UNet2DConditionModel(
    sample_size=32, block_out_channels=(64, 128, 256), cross_attention_dim=256, attention_head_dim=8,
    down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
)  # fmt: skip
for part in (text, vae, unet):
    part.requires_grad_(False)
    part.to(device, dtype=dtype)
unet.add_adapter(LoraConfig(r=4, lora_alpha=4, init_lora_weights="gaussian", target_modules=["to_k", "to_q", "to_v"]))
trained = [parameter for parameter in unet.parameters() if parameter.requires_grad]
for parameter in trained:
    parameter.data = parameter.to(torch.float32)
unet.enable_gradient_checkpointing()
optimizer = torch.optim.AdamW(trained, lr=1e-4)
scheduler = DDPMScheduler(num_train_timesteps=1000, beta_schedule="scaled_linear")
for step in range(100):
    pixels = torch.rand(2, 3, 64, 64).to(device, dtype=dtype)
    ids = torch.randint(0, 49408, (2, 77)).to(device)
    with torch.no_grad():
        latents = vae.encode(pixels).latent_dist.sample() * 0.18
        states = text(ids, return_dict=False)[0]
    noise = torch.randn_like(latents)
    times = torch.randint(0, scheduler.config.num_train_timesteps, (2,), device=device).long()
    with torch.autocast("cuda", dtype=dtype):
        prediction = unet(scheduler.add_noise(latents, noise, times), times, states, return_dict=False)[0]
        loss = torch.nn.functional.mse_loss(prediction.float(), noise.float(), reduction="mean")
    loss.backward()
    torch.nn.utils.clip_grad_norm_(trained, 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.detach().item())
