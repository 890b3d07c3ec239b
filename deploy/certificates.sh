#!/bin/sh
# An authority and one certificate for each role, for trying TLS without cert-manager:
#   deploy/certificates.sh DIRECTORY router workflow pipeline orchestrator agent operator
set -eu
directory=$1
shift
mkdir -p "$directory"
cd "$directory"
new_key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1"; }
if [ ! -f ca.crt ]; then
    new_key ca.key
    openssl req -x509 -new -key ca.key -days 30 -subj /CN=pointsman-authority -out ca.crt
fi
for role in "$@"; do
    mkdir -p "$role"
    new_key "$role/tls.key"
    openssl req -new -key "$role/tls.key" -subj "/CN=$role" -out "$role/request.csr"
    printf 'subjectAltName=URI:spiffe://pointsman/%s,DNS:pointsman-%s,DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n' "$role" "$role" > "$role/names"
    openssl x509 -req -in "$role/request.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -extfile "$role/names" -out "$role/tls.crt" 2> /dev/null
    rm "$role/request.csr" "$role/names"
    cp ca.crt "$role/ca.crt"
done
