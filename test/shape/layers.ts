const belowMemory = [
  'domain',
  'text',
  'selection',
  'search',
  'context',
  'formats',
  'upkeep',
  'profiles',
  'stores',
  'lifecycle',
  'memory',
]
const library = [...belowMemory, 'tokenizers', 'portable', 'providers', 'open', 'index']
const isomorphicLibrary = [
  'domain',
  'text',
  'selection',
  'search',
  'context',
  'formats',
  'tokenizers/fastTokenCounters',
  'upkeep',
  'profiles',
  'stores/ram',
  'lifecycle',
  'memory',
]

/**
 * Folders and files of `src/` that each folder may import besides itself. A file belongs to the longest entry that its
 * path starts with.
 */
export const allowedImports: Readonly<Record<string, readonly string[]>> = {
  nodeVersion: [],
  requireNode: ['nodeVersion'],
  domain: [],
  text: ['domain'],
  profiles: ['domain'],
  selection: ['domain', 'text'],
  search: ['domain', 'text'],
  context: ['domain', 'text', 'selection', 'search', 'tokenizers/fastTokenCounters'],
  formats: ['domain', 'text', 'context'],
  upkeep: ['domain', 'text', 'context', 'search'],
  languages: ['domain', 'text'],
  'tokenizers/fastTokenCounters': ['domain'],
  tokenizers: ['domain', 'text', 'context'],
  'stores/ram': ['domain', 'text', 'search'],
  stores: ['domain', 'text', 'search', 'context', 'languages', 'requireNode'],
  lifecycle: ['domain', 'text', 'search', 'context', 'upkeep', 'profiles', 'stores/ram', 'memory'],
  memory: [
    'domain',
    'text',
    'selection',
    'search',
    'context',
    'formats',
    'upkeep',
    'profiles',
    'stores/ram',
    'lifecycle',
  ],
  open: ['domain', 'text', 'selection', 'profiles', 'memory', 'lifecycle', 'upkeep'],
  types: [...isomorphicLibrary, 'open'],
  browser: [...isomorphicLibrary, 'open', 'types'],
  files: ['domain', 'text', 'search', 'context', 'upkeep', 'memory'],
  portable: [...belowMemory, 'graph', 'tokenizers'],
  providers: belowMemory,
  index: ['requireNode', ...belowMemory, 'languages', 'tokenizers', 'graph', 'portable', 'providers', 'open', 'types'],
  'adapters/session-memory': [...isomorphicLibrary, 'browser'],
  adapters: library,
  graph: belowMemory,
  handoff: [...library, 'graph'],
  mcp: [...library, 'graph', 'handoff'],
  server: [...library, 'files', 'graph', 'handoff', 'mcp'],
  evaluation: [...library, 'graph', 'handoff'],
  cli: ['nodeVersion', ...library, 'adapters', 'server', 'graph', 'handoff', 'mcp', 'evaluation', 'files'],
}

/** Folders that run in a browser's worker. */
export const coreFolders: readonly string[] = [...isomorphicLibrary, 'open', 'browser', 'adapters/session-memory']

/** Folders that take time and randomness as arguments; the two browser entry points supply the clock. */
export const pureFolders: readonly string[] = [...isomorphicLibrary, 'open']

const isWithin = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`)
const pathInSrc = (path: string): string => path.replace(/^src\//, '').replace(/\.tsx?$/, '')

/** Finds the entry of `allowedImports` that a file belongs to. */
export const folderOf = (path: string): string | undefined =>
  Object.keys(allowedImports)
    .filter((folder) => isWithin(pathInSrc(path), folder))
    .sort((a, b) => b.length - a.length)[0]

export const isInFolders = (path: string, folders: readonly string[]): boolean =>
  path.startsWith('src/') && folders.some((folder) => isWithin(pathInSrc(path), folder))
