/** How much is taken on: a file that would need more ends in an error that says so. */
export type FileLimits = {
  /** Of a file as it comes, and of what its packed parts unfold to. */
  readonly bytes: number
  readonly unpackedBytes: number
  /** Of the text read from it. */
  readonly characters: number
  readonly pages: number
  /** For reading one file, and how much memory may be used for it. */
  readonly milliseconds: number
  readonly heapMegabytes: number
  /** Files of one tenant, and files of all tenants that wait for their turn. */
  readonly files: number
  readonly waiting: number
}

export const defaultLimits: FileLimits = {
  bytes: 20_000_000,
  unpackedBytes: 100_000_000,
  characters: 5_000_000,
  pages: 5_000,
  milliseconds: 60_000,
  heapMegabytes: 256,
  files: 2_000,
  waiting: 16,
}
