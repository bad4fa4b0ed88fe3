// @portkey-ai/gateway as it is published, but for one thing: it appends to the headers of what it fetched, which are immutable where a
// newer version of its server framework passes them on as they are, so that every stream would fail.
const fetched = globalThis.fetch
globalThis.fetch = async (...args: Parameters<typeof fetch>): Promise<Response> => {
  const response = await fetched(...args)
  return Object.defineProperty(response, 'headers', { value: new Headers(response.headers) })
}
await import(new URL('../node_modules/@portkey-ai/gateway/build/start-server.js', import.meta.url).href)
