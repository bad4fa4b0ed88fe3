// Serves the page in this folder and the browser build of Threadkeep on the local machine.
// Run: node serve.ts
// Needs: npm install threadkeep. In a checkout: npm run build, then node examples/browser/serve.ts.
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'

const page = new URL('./', import.meta.url)
const build = new URL('dist/', import.meta.resolve('threadkeep/package.json'))

const server = createServer(async (request, response) => {
  const path = new URL(request.url ?? '/', 'http://localhost').pathname.replace(/\/$/, '/index.html')
  const [folder, name] = path.startsWith('/threadkeep/') ? [build, path.slice(12)] : [page, path.slice(1)]
  const type = name.endsWith('.html') ? 'text/html' : 'text/javascript'
  try {
    // The parser of URLs has removed `..`, so files outside the two folders cannot be requested.
    const file = await readFile(new URL(name, folder))
    response.writeHead(200, { 'content-type': `${type}; charset=utf-8` }).end(file)
  } catch {
    response.writeHead(404).end()
  }
})
server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => {
  const address = server.address()
  console.log(`Open http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`)
})
