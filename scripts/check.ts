import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { buffer } from 'node:stream/consumers'

/** Checks that run while the unit tests run. Their output follows that of the tests. */
const quietChecks = ['types', 'lint']

/** Runs a script of package.json; returns its exit code and its output. */
async function runQuietly(script: string): Promise<{ readonly code: number; readonly output: Buffer }> {
  const child = spawn('npm', ['run', script], { stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr, [code]] = await Promise.all([buffer(child.stdout), buffer(child.stderr), once(child, 'close')])
  return { code: code ?? 1, output: Buffer.concat([stdout, stderr]) }
}

const pending = quietChecks.map(runQuietly)
const tests = spawn('vitest', ['run', '--project', 'unit'], { stdio: 'inherit' })
const [testCode] = await once(tests, 'close')
const results = await Promise.all(pending)
for (const { output } of results) process.stdout.write(output)
const codes = results.map(({ code }) => code)
const failed = ['unit tests', ...quietChecks].filter((_, index) => [testCode ?? 1, ...codes][index] !== 0)
if (failed.length > 0) {
  console.error(`Failed: ${failed.join(', ')}.`)
  process.exitCode = 1
}
