// What goes wrong at gs_server.mjs. A fault is
//   {kind, method, match, skip, times, …}
// for requests of that method whose URL matches the regular expression, after the first `skip` of them (default 0), so
// many `times` (default 1). Kinds:
//   status          answered with `status`, `headers` and a `reason`, or a `body`
//   stall           never answered
//   cutRequest      the connection is closed when `bytes` of the body have come
//   cutResponse     … when so many of an object have been sent;  stallResponse: then nothing more comes
//   loseResponse    carried out, but the connection is closed instead of an answer
//   keepHalf        of a chunk of an upload only half is kept
//   damageOnTheWay  a bit of what is uploaded flips before check sums are compared
//   damage          … after that, or of what is downloaded
let faults = [];

export function setFaults(list) {
  faults = list.map((fault) => ({ skip: 0, times: 1, ...fault }));
  return {};
}

// That of this request, which is counted; undefined when there is none.
export function faultOf(req) {
  for (const fault of faults) {
    if (fault.method !== undefined && fault.method !== req.method) continue;
    if (fault.match !== undefined && !new RegExp(fault.match).test(req.url)) continue;
    if (fault.skip > 0) {
      --fault.skip;
    } else if (fault.times > 0) {
      --fault.times;
      return fault;
    }
  }
  return undefined;
}
