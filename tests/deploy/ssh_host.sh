#!/usr/bin/env bash
# Starts an SSH server on loopback in a folder of its own, for tests, which the printed configuration reaches as the host
# `node`: needs root and Debian's openssh-server. `ssh_host.sh FOLDER stop` ends it.
set -euo pipefail
folder=$1
if [ "${2:-start}" = stop ]; then
    kill "$(cat "$folder/sshd.pid")"
    exit
fi

mkdir -p "$folder" /run/sshd
chmod 700 "$folder"
ssh-keygen -q -t ed25519 -N "" -f "$folder/host_key"
ssh-keygen -q -t ed25519 -N "" -f "$folder/user_key"
cp "$folder/user_key.pub" "$folder/authorized_keys"
port=$(python3 "$(dirname "$0")/../ports.py" 1)
echo "[127.0.0.1]:$port $(cat "$folder/host_key.pub")" >"$folder/known_hosts"
cat >"$folder/sshd_config" <<CONF
ListenAddress 127.0.0.1
Port $port
HostKey $folder/host_key
PidFile $folder/sshd.pid
AuthorizedKeysFile $folder/authorized_keys
PasswordAuthentication no
PermitRootLogin prohibit-password
StrictModes no
SetEnv PYTHONPATH=${PYTHONPATH:-}
CONF
"$(command -v sshd || echo /usr/sbin/sshd)" -f "$folder/sshd_config" -E "$folder/log"
cat >"$folder/config" <<CONF
Host node
    HostName 127.0.0.1
    Port $port
    User $(id -un)
    IdentityFile $folder/user_key
    UserKnownHostsFile $folder/known_hosts
CONF
echo "$folder/config"
