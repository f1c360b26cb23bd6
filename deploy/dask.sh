# shellcheck shell=bash
# Source this from the clone: `. deploy/dask.sh FOLDER`. Makes certificates in FOLDER unless they are there, and tells every
# Dask process started from this shell to use them and to talk to nobody else. Who reads FOLDER can run code on the cluster.
# The driver itself counts how often a task fails. Schedulers and workers say on their pages that they are well, no more.
scalemani_tls=$(realpath -m "$1")
if [ ! -f "$scalemani_tls/certificate.pem" ]; then
    "${SCALEMANI_VENV:-.venv}/bin/scalemani" tls "$scalemani_tls" >/dev/null || return 1
fi
export DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=True
export DASK_DISTRIBUTED__COMM__TLS__CA_FILE=$scalemani_tls/ca.pem
for role in SCHEDULER WORKER CLIENT; do
    export "DASK_DISTRIBUTED__COMM__TLS__${role}__CERT=$scalemani_tls/certificate.pem"
    export "DASK_DISTRIBUTED__COMM__TLS__${role}__KEY=$scalemani_tls/key.pem"
done
unset role
export DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=1000
export DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL="60 s"
export DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES="['distributed.http.health']"
export DASK_DISTRIBUTED__WORKER__HTTP__ROUTES="['distributed.http.health']"
