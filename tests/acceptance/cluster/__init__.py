"""`make cluster-acceptance`: the manifests of deploy/ on a real Kubernetes control plane whose nodes are simulated.

API server, controller manager and scheduler are built from the Go module proxy, etcd and kwok too; versions.toml pins
them. Nothing is pulled or started in a container: kwok says of every admitted pod that it runs. What is shown is that a
cluster accepts, admits, schedules and rolls what we deploy, and that names lead somewhere; not that the image works.
"""
