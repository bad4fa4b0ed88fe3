import { globSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
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
 * Replaces the files of the last build. Each is moved, which is atomic, and the page comes last, so that a server and
 * other builds at the same time never see a page without its files or a part of a file.
 */
function replaceOutput(folder: string): void {
  const page = 'index.html'
  const assets = globSync('**/*.*', { cwd: folder }).filter((path) => path !== page)
  for (const path of [...assets, page]) {
    mkdirSync(dirname(join(output, path)), { recursive: true })
    renameSync(join(folder, path), join(output, path))
  }
  const current = new Set([...assets, page])
  for (const path of globSync('**/*.*', { cwd: output })) if (!current.has(path)) rmSync(join(output, path))
}

if (import.meta.main) await buildInspector()
