//! Contains the rows of the [grammar](super::grammar).

/// The rows of the grammar of admission conditions.
pub(crate) const ROWS: &str = r"
bool | {bool} && {bool}
bool | {bool} || {bool}
bool | !{bool}
bool | {bool} && {bool} || {bool}
bool | {bool} ? {bool} : {bool}
bool | {T} == {T}
bool | {T} != {T}
bool | {N} < {N}
bool | {N} >= {N}
bool | {string} < {string}
bool | {string} >= {string}
bool | {bytes} > {bytes}
bool | {duration} <= {duration}
bool | {timestamp} < {timestamp}
bool | {int} < {double}
bool | {uint} >= {int}
bool | {dyn} == {dyn}
bool | {dyn} < {dyn}
bool | {type} == {type}
bool | {list(T)} == {list(T)}
bool | {map(string,T)} == {map(string,T)}
bool | {optional(T)} == {optional(T)}
bool | {T} in {list(T)}
bool | {dyn} in {list(dyn)}
bool | {string} in {map(string,T)}
bool | {dyn} in {dyn}
bool | {list(T)}.all($1, {bool/T})
bool | {list(T)}.exists($1, {bool/T})
bool | {list(T)}.exists_one($1, {bool/T})
bool | {list(T)}.all($1, $2, {bool/int,T})
bool | {list(T)}.exists($1, $2, {bool/int,T})
bool | {list(T)}.existsOne($1, $2, {bool/int,T})
bool | {map(string,T)}.all($1, {bool/string})
bool | {map(string,T)}.exists($1, $2, {bool/string,T})
bool | {dyn}.all($1, {bool/dyn})
bool | {string}.contains({string})
bool | {string}.startsWith({string})
bool | {string}.endsWith({string})
bool | {string}.matches({regex})
bool | {optional(T)}.hasValue()
bool | {optional(dyn)}.hasValue()
bool | {list(N)}.isSorted()
bool | {list(string)}.isSorted()
bool | {list(T)}.includes({T})
bool | sets.contains({list(T)}, {list(T)})
bool | sets.equivalent({list(T)}, {list(T)})
bool | sets.intersects({list(T)}, {list(T)})
bool | bool({string})
bool | has(object.metadata.labels)
bool | has(object.spec.missing)
bool | has({dyn}.name)
bool | has(request.userInfo)
bool | has({map(string,T)}.a)
bool | object.spec.hostNetwork
bool | request.dryRun
bool | request.kind == request.requestKind
bool | request.userInfo.groups == {list(string)}
bool | isQuantity({quantity_text})
bool | {quantity}.isGreaterThan({quantity})
bool | {quantity}.isLessThan({quantity})
bool | {quantity} == {quantity}
bool | {quantity}.isInteger()
bool | isURL({url_text})
bool | {url} == {url}
bool | isIP({ip_text})
bool | ip.isCanonical({ip_text})
bool | {ip} == {ip}
bool | {ip}.isLoopback()
bool | {ip}.isUnspecified()
bool | {ip}.isGlobalUnicast()
bool | {ip}.isLinkLocalUnicast()
bool | {ip}.isLinkLocalMulticast()
bool | isCIDR({cidr_text})
bool | {cidr} == {cidr}
bool | {cidr}.containsIP({ip_text})
bool | {cidr}.containsIP({ip})
bool | {cidr}.containsCIDR({cidr_text})
bool | {cidr}.containsCIDR({cidr})
bool | isSemver({semver_text})
bool | isSemver({semver_text}, {bool})
bool | {semver}.isLessThan({semver})
bool | {semver} == {semver}
bool | {format} == {format}
bool | {decision}.allowed()
bool | {decision}.errored()
int | {int} + {int}
int | {int} - {int}
int | {int} * {int}
int | {int} / {int}
int | {int} % {int}
int | -{int}
int | {bool} ? {int} : {int}
int | int({string})
int | int({double})
int | int({uint})
int | int({timestamp})
int | int({duration})
int | size({string})
int | size({bytes})
int | {list(T)}.size()
int | {map(string,T)}.size()
int | {string}.size()
int | {string}.indexOf({string})
int | {string}.indexOf({string}, {int})
int | {string}.lastIndexOf({string})
int | {list(T)}.indexOf({T})
int | {list(T)}.lastIndexOf({T})
int | {list(int)}.sum()
int | {list(int)}.max()
int | {list(int)}.min()
int | {list(int)}[{int}]
int | {map(string,int)}[{string}]
int | {map(string,int)}.a
int | {optional(int)}.orValue({int})
int | {optional(int)}.value()
int | {timestamp}.getFullYear()
int | {timestamp}.getMonth()
int | {timestamp}.getDayOfYear({zone})
int | {timestamp}.getDate({zone})
int | {timestamp}.getDayOfWeek()
int | {timestamp}.getHours({zone})
int | {timestamp}.getMinutes({zone})
int | {timestamp}.getSeconds()
int | {timestamp}.getMilliseconds()
int | {duration}.getHours()
int | {duration}.getSeconds()
int | {duration}.getMilliseconds()
int | {quantity}.compareTo({quantity})
int | {quantity}.asInteger()
int | sign({quantity})
int | {ip}.family()
int | {cidr}.prefixLength()
int | {semver}.major()
int | {semver}.compareTo({semver})
int | request.userInfo.groups.size()
uint | {uint} + {uint}
uint | {uint} - {uint}
uint | {uint} * {uint}
uint | {uint} / {uint}
uint | {uint} % {uint}
uint | uint({int})
uint | uint({double})
uint | uint({string})
uint | {list(uint)}.max()
uint | {list(uint)}[{int}]
uint | {bool} ? {uint} : {uint}
double | {double} + {double}
double | {double} - {double}
double | {double} * {double}
double | {double} / {double}
double | -{double}
double | double({int})
double | double({uint})
double | double({string})
double | {list(double)}.sum()
double | {list(double)}.min()
double | {quantity}.asApproximateFloat()
double | {optional(double)}.orValue({double})
string | {string} + {string}
string | {bool} ? {string} : {string}
string | string({N})
string | string({bool})
string | string({bytes})
string | string({duration})
string | string({timestamp})
string | string({ip})
string | string({cidr})
string | string({dyn})
string | {string}.charAt({int})
string | {string}.substring({int})
string | {string}.substring({int}, {int})
string | {string}.lowerAscii()
string | {string}.upperAscii()
string | {string}.trim()
string | {string}.replace({string}, {string})
string | {string}.replace({string}, {string}, {int})
string | {string}.find({regex})
string | strings.quote({string})
string | {list(string)}.join()
string | {list(string)}.join({string})
string | {list(string)}[{int}]
string | {list(string)}.max()
string | {map(string,string)}.a
string | {optional(string)}.orValue({string})
string | {format_string}.format([{T}])
string | {format_string}.format([{list(T)}])
string | '%s: %d'.format([{dyn}, {dyn}])
string | {url}.getHost()
string | {url}.getHostname()
string | {url}.getPort()
string | {url}.getScheme()
string | {url}.getEscapedPath()
string | {decision}.reason()
string | {decision}.error()
string | request.name
string | request.operation
string | request.kind.kind
string | request.resource.resource
string | request.userInfo.username
string | request.userInfo.groups[0]
string | request.userInfo.extra['scopes'][{int}]
string | request.subResource
bytes | {bytes} + {bytes}
bytes | bytes({string})
duration | {duration} + {duration}
duration | {duration} - {duration}
duration | {timestamp} - {timestamp}
duration | duration({string})
duration | {list(duration)}.sum()
duration | {list(duration)}[{int}]
timestamp | {timestamp} + {duration}
timestamp | {timestamp} - {duration}
timestamp | timestamp({int})
timestamp | timestamp({string})
timestamp | timestamp(object.metadata.creationTimestamp)
type | type({T})
type | type({dyn})
type | type({list(T)})
list(T) | []
list(T) | [{T}]
list(T) | [{T}, {T}]
list(T) | [{T}, {T}, {T}]
list(T) | [?{optional(T)}, {T}]
list(T) | {list(T)} + {list(T)}
list(T) | {list(T)}.filter($1, {bool/T})
list(T) | {list(int)}.map($1, {T/int})
list(T) | {list(string)}.map($1, {bool/string}, {T/string})
list(T) | {list(T)}.distinct()
list(T) | {list(T)}.reverse()
list(T) | {list(T)}.slice({int}, {int})
list(T) | [{list(T)}, {list(T)}].flatten()
list(T) | {list(int)}.transformList($1, $2, {T/int,int})
list(T) | optional.unwrap([{optional(T)}, {optional(T)}])
list(T) | {bool} ? {list(T)} : {list(T)}
list(T) | {optional(list(T))}.orValue({list(T)})
list(N) | {list(N)}.sort()
list(string) | {list(string)}.sort()
list(string) | {list(string)}.sortBy($1, {int/string})
list(int) | {list(int)}.sortBy($1, {string/int})
list(int) | lists.range({int} % 10)
list(int) | lists.range(5)
list(string) | {string}.split({string})
list(string) | {string}.split({string}, {int})
list(string) | {string}.findAll({regex})
list(string) | {string}.findAll({regex}, {int})
list(string) | request.userInfo.groups
list(string) | {map(string,T)}.map($1, $1)
list(string) | {format}.validate({name_text}).orValue([])
list(string) | {url}.getQuery()['q']
list(dyn) | [{dyn}, dyn({int})]
list(dyn) | object.spec.containers
list(dyn) | dyn({list(int)})
map(string,T) | {{}}
map(string,T) | {{'a': {T}}}
map(string,T) | {{{string}: {T}}}
map(string,T) | {{?'a': {optional(T)}}}
map(string,T) | {map(string,T)}.transformMap($1, $2, {T/string,T})
map(string,T) | {bool} ? {map(string,T)} : {map(string,T)}
map(string,string) | {list(string)}.transformMapEntry($1, $2, {{$2: $2}})
optional(T) | optional.none()
optional(T) | optional.of({T})
optional(T) | optional.ofNonZeroValue({T})
optional(T) | {list(T)}[?{int}]
optional(T) | {list(T)}.first()
optional(T) | {list(T)}.last()
optional(T) | {map(string,T)}[?{string}]
optional(T) | {map(string,T)}.?a
optional(T) | {optional(T)}.or({optional(T)})
optional(T) | {optional(int)}.optMap($1, {T/int})
optional(T) | {optional(string)}.optFlatMap($1, {optional(T)/string})
optional(list(T)) | optional.none()
optional(list(T)) | optional.of({list(T)})
optional(dyn) | {dyn}.?name
optional(dyn) | object.?metadata.?labels
optional(dyn) | object.?metadata.?nosuch.?deeper
optional(dyn) | {dyn}[?{dyn}]
quantity | quantity('1')
quantity | quantity({quantity_text})
quantity | {quantity}.add({quantity})
quantity | {quantity}.add({int})
quantity | {quantity}.sub({quantity})
quantity | {quantity}.sub({int})
quantity | quantity(object.spec.containers[0].resources.limits.memory)
url | url({url_text})
url | url('https://a')
url | url(object.spec.url)
ip | ip('::1')
ip | ip({ip_text})
ip | {cidr}.ip()
cidr | cidr('10.0.0.0/8')
cidr | cidr({cidr_text})
cidr | {cidr}.masked()
semver | semver('1.2.3')
semver | semver({semver_text})
semver | semver({semver_text}, {bool})
format | {optional(format)}.value()
authorizer | authorizer
authorizer | authorizer.serviceAccount('default', {name_text})
decision | authorizer.requestResource.check({verb})
decision | authorizer.requestResource.check('get')
decision | {authorizer}.path({string}).check({verb})
decision | {authorizer}.group({string}).resource({name_text}).check({verb})
decision | {authorizer}.group('').resource('pods').subresource({string}).namespace({string}).name({string}).check({verb})
decision | {authorizer}.group('').resource('pods').labelSelector({string}).fieldSelector({string}).check({verb})
dyn | dyn({T})
dyn | dyn({list(T)})
dyn | dyn({map(string,T)})
dyn | dyn({bytes})
dyn | dyn({timestamp})
dyn | dyn({optional(T)})
dyn | dyn({quantity})
dyn | dyn({type})
dyn | dyn(null)
dyn | {dyn} + {dyn}
dyn | {dyn} * {dyn}
dyn | -{dyn}
dyn | {dyn}[{dyn}]
dyn | {dyn}.name
dyn | {dyn}[{string}]
dyn | {bool} ? {dyn} : {dyn}
dyn | object
dyn | oldObject
dyn | object.metadata
dyn | object.metadata.name
dyn | object.metadata.labels
dyn | object.metadata.labels.app
dyn | object.metadata.labels['tier']
dyn | object.metadata.nosuch
dyn | object.spec
dyn | object.spec.replicas
dyn | object.spec.priority
dyn | object.spec.weight
dyn | object.spec.big
dyn | object.spec.nodeName
dyn | object.spec.hostNetwork
dyn | object.spec.tolerations
dyn | object.spec.containers
dyn | object.spec.containers[0]
dyn | object.spec.containers[{int}].name
dyn | object.spec.containers[1].image
dyn | object.spec.containers[0].ports[0].containerPort
dyn | oldObject.spec.replicas
dyn | oldObject.metadata.labels.app
dyn | request.options
dyn | dyn(request.kind)
dyn | dyn(request.userInfo)
";
