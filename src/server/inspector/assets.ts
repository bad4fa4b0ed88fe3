import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

/** A file of the inspector page, in both forms in which it is sent. */
export type Asset = { readonly type: string; readonly bytes: Buffer; readonly gzipped: Buffer }

/** The page and the files that it loads, by name. */
export type Inspector = { readonly page: Asset; readonly assets: ReadonlyMap<string, Asset> }

/** Folder of the built page, in a checkout and in the package. */
export const inspectorFolder = fileURLToPath(new URL('../../../inspector/dist', import.meta.url))

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

const compress = promisify(gzip)

/** Reads the built inspector page; undefined if it was not built. */
async function readInspector(folder: string): Promise<Inspector | undefined> {
  try {
    const page = await readAsset(join(folder, 'index.html'))
    const names = await readdir(join(folder, 'assets'))
    const files = await Promise.all(
      names.map(async (name): Promise<[string, Asset]> => [name, await readAsset(join(folder, 'assets', name))]),
    )
    return { page, assets: new Map(files) }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

async function readAsset(path: string): Promise<Asset> {
  const bytes = await readFile(path)
  return { type: types[extname(path)] ?? 'application/octet-stream', bytes, gzipped: await compress(bytes) }
}

/** Returns a function that reads the page with its first call, and again as long as it was not built. */
export function inspectorReader(folder: string | undefined): () => Promise<Inspector | undefined> {
  let inspector: Promise<Inspector | undefined> | undefined
  return async () => {
    if (folder === undefined) return undefined
    inspector ??= readInspector(folder)
    const found = await inspector.catch((error: unknown) => {
      inspector = undefined
      throw error
    })
    if (found === undefined) inspector = undefined
    return found
  }
}
