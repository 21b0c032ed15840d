// A worker, dedicated or shared, that reaches out in the ways that it has.
const base = "@BASE@";
const kind = self.postMessage ? "worker" : "shared";
try { importScripts(`${base}/${kind}-import`); } catch { /* as it should be */ }
const all = Promise.allSettled([
    fetch(`${base}/${kind}-fetch`),
    new Promise(done => {
        const socket = new WebSocket(base.replace(/^http/, "ws") + `/${kind}-websocket`);
        socket.onerror = socket.onopen = done;
    }),
    new Promise(done => {
        const source = new EventSource(`${base}/${kind}-eventsource`);
        source.onerror = source.onopen = done;
    }),
]);
if (self.postMessage) all.then(() => self.postMessage("done"));
else self.onconnect = event => all.then(() => event.ports[0].postMessage("done"));
