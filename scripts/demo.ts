import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { startDemo } from './demo/demoServer.ts'
import { buildInspector } from './inspector.ts'

/** Serves the inspector page over generated conversations, until it is interrupted. Nothing is kept. */
await buildInspector()
process.stderr.write('Generating conversations…\n')
await using demo = await startDemo({ port: Number(process.env.THREADKEEP_PORT ?? 4848) })
process.stdout.write(`Open ${demo.url} in a browser. Ctrl-C deletes the data.\n`)
openPage(demo.url)
await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])

/** Opens the page in the browser of the desktop, if a person runs this on one. */
function openPage(url: string): void {
  const hasDesktop = process.platform !== 'linux' || 'DISPLAY' in process.env || 'WAYLAND_DISPLAY' in process.env
  if (process.stdout.isTTY !== true || !hasDesktop) return
  const openers: Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>> = {
    darwin: ['open'],
    win32: ['cmd', '/c', 'start', ''],
  }
  const [program, ...args] = openers[process.platform] ?? ['xdg-open']
  // The address was printed: without such a program, the reader opens it.
  spawn(program, [...args, url], { stdio: 'ignore', detached: true })
    .on('error', () => undefined)
    .unref()
}
