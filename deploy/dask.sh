# shellcheck shell=bash
# Source this from the clone: `. deploy/dask.sh FOLDER`. Makes certificates in FOLDER unless they are there, and tells every
# Dask process started from this shell to use them and to talk to nobody else. Who reads FOLDER can run code on the cluster.
# Schedulers and workers say on their pages that they are well, no more.
scalemani_tls=$(realpath -m "$1")
if [ ! -f "$scalemani_tls/certificate.pem" ]; then
    (umask 077 && mkdir -p "$scalemani_tls")
    openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj /CN=scalemani -batch -keyout "$scalemani_tls/key.pem" \
        -out "$scalemani_tls/ca.pem" 2>/dev/null || return 1
    chmod 600 "$scalemani_tls/ca.pem"
    cp -p "$scalemani_tls/ca.pem" "$scalemani_tls/certificate.pem"
fi
export DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=True
export DASK_DISTRIBUTED__COMM__TLS__CA_FILE=$scalemani_tls/ca.pem
for role in SCHEDULER WORKER CLIENT; do
    export "DASK_DISTRIBUTED__COMM__TLS__${role}__CERT=$scalemani_tls/certificate.pem"
    export "DASK_DISTRIBUTED__COMM__TLS__${role}__KEY=$scalemani_tls/key.pem"
done
unset role
export DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL="60 s"
export DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES="['distributed.http.health']"
export DASK_DISTRIBUTED__WORKER__HTTP__ROUTES="['distributed.http.health']"
export DASK_DISTRIBUTED__WORKER__MEMORY__PAUSE=False # tasks are fitted to the limit: at four fifths of it Dask would pause
