import webhook

POD = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}


def test_sidecar_is_pulled_from_the_mirror(admit_server):
    admit_server.webhook("webhook.yaml", webhook.app)
    admit_server.fakes("fakes.yaml")
    pod = admit_server.create("/api/v1/namespaces/default/pods", POD)
    assert [c["image"] for c in pod["spec"]["containers"]] == ["mirror.example.com/nginx", "mirror.example.com/envoy"]

    first, injector, again = admit_server.calls()
    assert (again.webhook, again.round) == ("mirror.example.com", 2)
    assert again.object["spec"]["containers"][1]["image"] == "envoy"
    assert [change.path for change in again.changes] == ["spec.containers[1].image"]
