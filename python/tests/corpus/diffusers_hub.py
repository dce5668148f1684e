"""Stable Diffusion by its name on the hub: LoRA of its UNet, or all of it with EMA, after the pattern of diffusers' examples."""

import argparse

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from datasets import load_dataset
from diffusers import AutoencoderKL, DDPMScheduler, UNet2DConditionModel
from diffusers.training_utils import EMAModel, cast_training_params
from peft import LoraConfig
from torchvision import transforms
from transformers import CLIPTextModel, CLIPTokenizer

parser = argparse.ArgumentParser()
parser.add_argument("--pretrained_model_name_or_path", required=True)
parser.add_argument("--dataset_name", default="lambdalabs/naruto-blip-captions")
parser.add_argument("--resolution", type=int, default=512)
parser.add_argument("--train_batch_size", type=int, default=1)
parser.add_argument("--gradient_accumulation_steps", type=int, default=1)
parser.add_argument("--gradient_checkpointing", action="store_true")
parser.add_argument("--rank", type=int, default=0)
parser.add_argument("--mixed_precision")
args = parser.parse_args()
accelerator = Accelerator(
    gradient_accumulation_steps=args.gradient_accumulation_steps, mixed_precision=args.mixed_precision
)
name = args.pretrained_model_name_or_path
scheduler = DDPMScheduler.from_pretrained(name, subfolder="scheduler")
tokenizer = CLIPTokenizer.from_pretrained(name, subfolder="tokenizer")
text = CLIPTextModel.from_pretrained(name, subfolder="text_encoder").requires_grad_(False)
vae = AutoencoderKL.from_pretrained(name, subfolder="vae").requires_grad_(False)
unet = UNet2DConditionModel.from_pretrained(name, subfolder="unet")
dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(accelerator.mixed_precision, torch.float32)
for part in (text, vae):
    part.to(accelerator.device, dtype=dtype)
ema = None
if args.rank:
    unet.requires_grad_(False).to(accelerator.device, dtype=dtype)
    unet.add_adapter(LoraConfig(r=args.rank, target_modules=["to_k", "to_q", "to_v", "to_out.0"]))
    cast_training_params(unet, dtype=torch.float32)
else:
    ema = EMAModel(unet.parameters(), model_cls=UNet2DConditionModel, model_config=unet.config)
if args.gradient_checkpointing:
    unet.enable_gradient_checkpointing()
trained = [value for value in unet.parameters() if value.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=1e-4)
form = transforms.Compose([transforms.Resize(args.resolution), transforms.CenterCrop(args.resolution),
                           transforms.ToTensor(), transforms.Normalize([0.5], [0.5])])  # fmt: skip


def prepare(rows):
    ids = tokenizer(rows["text"], max_length=tokenizer.model_max_length, padding="max_length", truncation=True,
                    return_tensors="pt").input_ids  # fmt: skip
    return {"pixels": [form(image.convert("RGB")) for image in rows["image"]], "ids": ids}


data = load_dataset(args.dataset_name)["train"].with_transform(prepare)
loader = torch.utils.data.DataLoader(data, args.train_batch_size, shuffle=True)
unet, optimizer, loader = accelerator.prepare(unet, optimizer, loader)
if ema:
    ema.to(accelerator.device)
for rows in loader:
    with accelerator.accumulate(unet):
        latents = vae.encode(rows["pixels"].to(dtype)).latent_dist.sample() * vae.config.scaling_factor
        noise = torch.randn_like(latents)
        times = torch.randint(0, scheduler.config.num_train_timesteps, (len(latents),), device=latents.device)
        states = text(rows["ids"])[0]
        predicted = unet(scheduler.add_noise(latents, noise, times), times, states).sample
        accelerator.backward(F.mse_loss(predicted.float(), noise.float()))
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()
    if ema and accelerator.sync_gradients:
        ema.step(unet.parameters())
