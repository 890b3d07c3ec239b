# Sourced by backup.sh and restore.sh: POINTSMAN_DATABASE_URL as the libpq service "pointsman", in a file that only its
# owner can read. Arguments are shown to every user of the machine by ps, and the URL holds a password.
PGSERVICEFILE=$(mktemp)
trap 'rm -f "$PGSERVICEFILE"' EXIT
trap 'exit 1' HUP INT TERM
LC_ALL=C awk '
function decoded(text,    result, place) {
    result = ""
    while ((place = index(text, "%")) > 0) {
        result = result substr(text, 1, place - 1) sprintf("%c", digit(text, place + 1) * 16 + digit(text, place + 2))
        text = substr(text, place + 3)
    }
    return result text
}
function digit(text, place) { return index("0123456789abcdef", tolower(substr(text, place, 1))) - 1 }
function set(name, value) {
    value = decoded(value)
    if (value ~ /[\r\n]/) { print "POINTSMAN_DATABASE_URL: " name " holds a line break" >"/dev/stderr"; exit 1 }
    if (value != "") print name "=" value
}
function hosts(text,    parts, count, number, host, port, names, ports, end) {
    count = split(text, parts, ",")
    for (number = 1; number <= count; number++) {
        host = parts[number]; port = ""
        end = substr(host, 1, 1) == "[" ? index(host, "]") : 0
        if (match(substr(host, end + 1), /:[0-9]*$/)) {
            port = substr(host, end + RSTART + 1)
            host = substr(host, 1, end + RSTART - 1)
        }
        if (end) host = substr(host, 2, end - 2)
        names = names (number > 1 ? "," : "") host
        ports = ports (number > 1 ? "," : "") port
    }
    set("host", names)
    if (ports ~ /[0-9]/) set("port", ports)
}
BEGIN {
    url = ENVIRON["POINTSMAN_DATABASE_URL"]
    if (!sub(/^postgres(ql)?(\+[a-z0-9]+)?:\/\//, "", url)) {
        print "POINTSMAN_DATABASE_URL: write postgresql://user@host/name" >"/dev/stderr"; exit 1
    }
    print "[pointsman]"
    at = index(url, "@"); slash = index(url, "/")
    if (at && (!slash || at < slash)) {
        user = substr(url, 1, at - 1); url = substr(url, at + 1)
        colon = index(user, ":")
        if (colon) set("password", substr(user, colon + 1))
        set("user", colon ? substr(user, 1, colon - 1) : user)
    }
    question = index(url, "?")
    query = question ? substr(url, question + 1) : ""
    if (question) url = substr(url, 1, question - 1)
    slash = index(url, "/")
    hosts(slash ? substr(url, 1, slash - 1) : url)
    if (slash) set("dbname", substr(url, slash + 1))
    count = split(query, pairs, "&")
    for (number = 1; number <= count; number++) {
        equals = index(pairs[number], "=")
        if (equals) set(decoded(substr(pairs[number], 1, equals - 1)), substr(pairs[number], equals + 1))
    }
}' >"$PGSERVICEFILE"
export PGSERVICEFILE
