"""A plain torch.distributed program, without any code for Muster."""
import torch
import torch.distributed as dist

dist.init_process_group("gloo")  # RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT come from the environment
value = torch.full((4,), float(dist.get_rank() + 1))
dist.all_reduce(value)
print(f"rank {dist.get_rank()} of {dist.get_world_size()} has {value.tolist()}", flush=True)
dist.destroy_process_group()
