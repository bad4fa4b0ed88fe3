// Starts the published @portkey-ai/gateway with one patch: it appends to the headers of fetched responses, which are
// immutable, and with newer versions of its server framework every stream would fail.
const originalFetch = globalThis.fetch
globalThis.fetch = async (...args: Parameters<typeof fetch>): Promise<Response> => {
  const response = await originalFetch(...args)
  return Object.defineProperty(response, 'headers', { value: new Headers(response.headers) })
}
await import(new URL('../node_modules/@portkey-ai/gateway/build/start-server.js', import.meta.url).href)
