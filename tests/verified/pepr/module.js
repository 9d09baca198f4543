// A small module with one capability, as the documentation of Pepr shows them.
const { Capability, PeprModule, a } = require("pepr");

const PROXY = { name: "proxy", image: "registry.example/proxy:1.4" };

const sidecars = new Capability({ name: "sidecars", description: "Adds a sidecar, and refuses tags that move." });

sidecars
  .When(a.Pod)
  .IsCreated()
  .WithAnnotation("proxy.example/inject", "true")
  .Mutate(request => {
    request.SetLabel("proxy.example/injected", "true");
    const containers = request.Raw.spec.containers;
    if (containers.every(container => container.name !== PROXY.name)) {
      containers.push(PROXY);
    }
  });

sidecars
  .When(a.Pod)
  .IsCreated()
  .Validate(request => {
    const { containers, initContainers = [] } = request.Raw.spec;
    const moving = [...initContainers, ...containers].find(container => container.image.endsWith(":latest"));
    return moving
      ? request.Deny(`${moving.name}: the image needs a tag other than latest`, 403)
      : request.Approve();
  });

sidecars
  .When(a.ConfigMap)
  .IsDeleted()
  .Validate(request =>
    request.HasAnnotation("proxy.example/keep")
      ? request.Deny("remove the annotation proxy.example/keep first", 403)
      : request.Approve(),
  );

const settings = {
  description: "An example",
  pepr: { uuid: "example", onError: "reject", webhookTimeout: 10, alwaysIgnore: { namespaces: [] } },
};
const pepr = new PeprModule(settings, [sidecars], { deferStart: true });
// Its endpoints are there when it has read its store; a probe of its readiness would wait for them.
sidecars.Store.onReady(() => pepr.start(Number(process.env.PORT)));
