// A service worker: what it imports, asks for while it is installed, and answers a page with.
const base = "@BASE@";
try { importScripts(`${base}/service-import`); } catch { /* as it should be */ }
addEventListener("install", event => {
    skipWaiting();
    event.waitUntil(Promise.allSettled([
        fetch(`${base}/service-install`),
        caches.open("c").then(cache => cache.add(`${base}/service-cache`)),
    ]));
});
addEventListener("fetch", event => {
    event.respondWith(fetch(`${base}/service-fetch`).then(answer => answer.text(), String).then(text => new Response(text)));
});
