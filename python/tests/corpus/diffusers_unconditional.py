"""Unconditional diffusion: a UNet learns noise at random times; Accelerate, EMA and a cosine schedule."""

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from diffusers import DDPMScheduler, UNet2DModel
from diffusers.optimization import get_cosine_schedule_with_warmup
from diffusers.training_utils import EMAModel
from torchvision import datasets, transforms

accelerator = Accelerator(mixed_precision="fp16", gradient_accumulation_steps=1)
model = UNet2DModel(
    sample_size=64, in_channels=3, out_channels=3, layers_per_block=2, block_out_channels=(64, 128, 128, 256),
    down_block_types=("DownBlock2D", "DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D", "UpBlock2D"),
)  # fmt: skip
scheduler = DDPMScheduler(num_train_timesteps=1000)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
dataset = datasets.FakeData(
    256, (3, 64, 64), transform=transforms.Compose([transforms.ToTensor(), transforms.Normalize([0.5], [0.5])])
)
loader = torch.utils.data.DataLoader(dataset, batch_size=8, shuffle=True)
schedule = get_cosine_schedule_with_warmup(optimizer, 50, 500)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
ema = EMAModel(model.parameters(), decay=0.9999, use_ema_warmup=True)
ema.to(accelerator.device)
for _ in range(5):
    for clean, _ in loader:
        noise = torch.randn(clean.shape, device=clean.device)
        times = torch.randint(0, 1000, (clean.shape[0],), device=clean.device, dtype=torch.int64)
        noisy = scheduler.add_noise(clean, noise, times)
        with accelerator.accumulate(model):
            loss = F.mse_loss(model(noisy, times, return_dict=False)[0], noise)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        if accelerator.sync_gradients:
            ema.step(model.parameters())
        print(loss.detach().item())
