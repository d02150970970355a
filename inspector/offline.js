// The page's service worker: answers from the network, or with the last answer if the network is unavailable.
const KEPT = "polyflake-inspector";
const FILES = [
  "./",
  "./palette.css",
  "./style.css",
  "./bits.css",
  "./main.js",
  "./bits.js",
  "./core.js",
  "./dom.js",
  "./fits.js",
  "./generate.js",
  "./id.js",
  "./layout.js",
  "./url.js",
  "./words.js",
  "./polyflake.js",
];

addEventListener("install", (event) => {
  event.waitUntil(caches.open(KEPT).then((cache) => cache.addAll(FILES)));
});

addEventListener("fetch", (event) => {
  if (event.request.method === "GET") event.respondWith(answer(event.request));
});

/** @param {Request} request */
async function answer(request) {
  const cache = await caches.open(KEPT);
  try {
    const response = await fetch(request);
    if (response.ok) await cache.put(request, response.clone());
    return response;
  } catch (error) {
    const kept = await cache.match(request, { ignoreSearch: true });
    if (kept === undefined) throw error;
    return kept;
  }
}
