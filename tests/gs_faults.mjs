// Faults of gs_server.mjs. A fault is
//   {kind, method, match, skip, times, …}
// for requests of that method whose URL matches the regular expression. It skips the first `skip` of them (default 0) and
// applies `times` times (default 1). Kinds:
//   status          responds with `status`, `headers` and a `reason`, or a `body`
//   stall           never responds
//   cutRequest      closes the connection when `bytes` of the body have arrived
//   cutResponse     closes it when `bytes` of an object have been sent;  stallResponse: sends nothing more instead
//   loseResponse    executes the request, but closes the connection instead of responding
//   keepHalf        keeps only half of a chunk of an upload
//   damageOnTheWay  flips a bit of an upload before checksums are compared
//   damage          flips a bit of an upload after that, or of a download
let faults = [];

export function setFaults(list) {
  faults = list.map((fault) => ({ skip: 0, times: 1, ...fault }));
  return {};
}

// Returns the fault for this request, and counts it; undefined if there is none.
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
