# Made by hand.
; Another comment.
name = box
gpu = NVIDIA H200
source = measured
context = 1.4GiB
cudnn = 250M
cublas_workspace = 33554432
memory = 139 GiB
sm_count = 132
sm_clock_mhz = 1980
bandwidth_gbps = 4800
