#!/bin/bash
#SBATCH --nodes=4 --ntasks-per-node=1 --gpus-per-node=8 --exclusive

. .venv/bin/activate
rm -f fleet.address
kernelmark fleet start
srun --nodes=$((SLURM_NNODES - 1)) --ntasks=$((SLURM_NNODES - 1)) --exclude="$SLURMD_NODENAME" \
    kernelmark fleet join fleet.address --block &
python grade.py
kernelmark fleet stop
