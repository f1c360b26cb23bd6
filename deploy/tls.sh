# shellcheck shell=bash
# Source this: `. deploy/tls.sh FOLDER`. Makes a certificate in FOLDER unless one is there, and tells every Dask process that
# is started from this shell to use it and to talk to nobody else. Who can read FOLDER can run code on the cluster.
scalemani_tls=$(realpath -m "$1")
if [ ! -f "$scalemani_tls/cert.pem" ]; then
    (
        umask 077
        mkdir -p "$scalemani_tls"
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 365 -subj /CN=scalemani \
            -keyout "$scalemani_tls/key.pem" -out "$scalemani_tls/cert.pem" 2>"$scalemani_tls/log" || exit
        cp "$scalemani_tls/cert.pem" "$scalemani_tls/ca.pem"
    ) || return 1
fi
export DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=True
export DASK_DISTRIBUTED__COMM__TLS__CA_FILE=$scalemani_tls/ca.pem
for role in SCHEDULER WORKER CLIENT; do
    export "DASK_DISTRIBUTED__COMM__TLS__${role}__CERT=$scalemani_tls/cert.pem"
    export "DASK_DISTRIBUTED__COMM__TLS__${role}__KEY=$scalemani_tls/key.pem"
done
unset role
