#!/usr/bin/env bash
# Starts a Slurm of one node in a folder of its own, for tests: needs root and Debian's slurm-wlm and munge.
# Prints the configuration file that sbatch and squeue are to be given as SLURM_CONF; `slurm_node.sh FOLDER stop` ends it.
set -euo pipefail
folder=$1
if [ "${2:-start}" = stop ]; then
    for pid in "$folder"/*.pid; do
        kill "$(cat "$pid")" || true
    done
    exit
fi

mkdir -p "$folder"/{controller,node,munge}
chmod 755 "$folder"
chmod 700 "$folder/munge"
dd if=/dev/urandom of="$folder/munge/key" bs=128 count=1 status=none
chmod 400 "$folder/munge/key"
# munged wants every folder above its socket to be root's and closed to others' writing; tests' folders are below /tmp.
munged --force --key-file="$folder/munge/key" --socket="$folder/munged.socket" --pid-file="$folder/munged.pid" \
    --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" 2>"$folder/munge/warnings"

read -r controller_port node_port < <(python3 "$(dirname "$0")/../ports.py" 2)
cat >"$folder/slurm.conf" <<CONF
ClusterName=tests
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munged.socket
CredType=cred/munge
SlurmctldPort=$controller_port
SlurmdPort=$node_port
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
StateSaveLocation=$folder/controller
SlurmdSpoolDir=$folder/node
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdTimeout=300
SchedulerParameters=sched_interval=1,batch_sched_delay=0
NodeName=$(hostname -s) NodeAddr=127.0.0.1 CPUs=$(getconf _NPROCESSORS_ONLN) RealMemory=4000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$folder/slurm.conf
slurmctld
slurmd
for _ in $(seq 400); do
    if sinfo --noheader --format=%T 2>/dev/null | grep --quiet idle; then
        echo "$SLURM_CONF"
        exit
    fi
    sleep 0.5
done
echo "no idle node after 200 s; see $folder/slurmctld.log and $folder/slurmd.log" >&2
exit 1
