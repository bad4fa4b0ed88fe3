import { cpSync, globSync, mkdtempSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'
import config from '../inspector/vite.config.ts'

const root = fileURLToPath(new URL('../', import.meta.url))
const output = join(root, 'inspector/dist')
const sources = ['inspector/index.html', 'inspector/vite.config.ts', 'package-lock.json', 'inspector/src/**/*.*']

/** Time of the newest file that matches a pattern; 0 if there is none. */
const newest = (patterns: readonly string[]): number =>
  Math.max(
    0,
    ...patterns.flatMap((pattern) => globSync(pattern, { cwd: root })).map((path) => statSync(root + path).mtimeMs),
  )

/** Builds the inspector page, unless it is newer than its sources. */
export async function buildInspector(): Promise<void> {
  if (newest(['inspector/dist/index.html']) > newest(sources)) return
  process.stderr.write('Building the inspector page… ')
  const startedAt = performance.now()
  const folder = mkdtempSync(join(root, 'inspector/dist-'))
  try {
    await build({ ...config, configFile: false, build: { ...config.build, outDir: folder } })
    replaceOutput(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  process.stderr.write(`done in ${((performance.now() - startedAt) / 1_000).toFixed(1)} s.\n`)
}

/**
 * Replaces the files of the last build. The page comes last and the names of the others contain a hash, so that a server
 * and other builds at the same time never see a page without its files.
 */
function replaceOutput(folder: string): void {
  const files = new Set(globSync('**/*.*', { cwd: folder }))
  cpSync(folder, output, { recursive: true, filter: (path) => !path.endsWith('index.html') })
  cpSync(join(folder, 'index.html'), join(folder, 'index.next'))
  renameSync(join(folder, 'index.next'), join(output, 'index.html'))
  for (const path of globSync('**/*.*', { cwd: output })) if (!files.has(path)) rmSync(join(output, path))
}

if (import.meta.main) await buildInspector()
