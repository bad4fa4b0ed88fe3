/** So many rows are read at a time: no more are given at once. */
const some = 1_000

/**
 * All rows, page by page.
 *
 * @example
 * await every(async (page) => (await graph.entities('default', { types: ['session'], ...page })).entities)
 */
export async function every<T>(
  read: (page: { readonly limit: number; readonly offset: number }) => Promise<readonly T[]>,
): Promise<readonly T[]> {
  const found: T[] = []
  for (;;) {
    const next = await read({ limit: some, offset: found.length })
    found.push(...next)
    if (next.length < some) return found
  }
}
