# An example for a GPU cluster, to be adapted and sourced before `make setup` on a node that has the compiler and CUDA:
#   source cluster/slurm/gpu-example.sh && make setup
# The names of modules are your cluster's own: `module avail gcc cuda nccl openmpi`. Not tried on a cluster yet.
module load gcc/13          # C++20, which torch's headers need
module load cuda/13.0       # of the same major version as `python -c "import torch; print(torch.version.cuda)"`
module load nccl/2          # torch's own is no use here: its package lacks the name libnccl.so, which CMake looks for
# module load openmpi/4.1   # only for world.controller: mpi; it has to know Slurm's PMIx or PMI2

export HOROVOD_GPU_OPERATIONS=NCCL
export HOROVOD_CUDA_HOME=${CUDA_HOME:-/usr/local/cuda}
export HOROVOD_NCCL_HOME=${NCCL_HOME:-/usr}
export HOROVOD_NCCL_LINK=SHARED
