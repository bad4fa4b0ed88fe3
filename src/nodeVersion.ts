/** Oldest version with the SQLite release that does not lose commits in WAL mode, `backup` and zstd. */
const minMajor = 24

/** Describes a Node version that is too old; undefined for others. Runs on every version that knows modules. */
export function describeOldNode(version: string): string | undefined {
  return Number.parseInt(version, 10) >= minMajor
    ? undefined
    : `Threadkeep needs Node ${minMajor} or newer; this is Node ${version}. Install a newer version from https://nodejs.org or with your version manager.`
}
