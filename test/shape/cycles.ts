import { listImportedPaths, type Source } from './source.ts'

/**
 * Finds import cycles, type imports included: Tarjan's strongly connected components with more than one file. Each
 * component is a sorted list of paths.
 */
export function findCycles(sources: readonly Source[]): readonly (readonly string[])[] {
  const paths = new Set(sources.map(({ path }) => path))
  const imports = new Map(
    sources.map((source) => [source.path, listImportedPaths(source).filter((target) => paths.has(target))]),
  )
  const order = new Map<string, number>()
  const lowest = new Map<string, number>()
  const open: string[] = []
  const isOpen = new Set<string>()
  const cycles: string[][] = []

  const visit = (path: string): void => {
    order.set(path, order.size)
    lowest.set(path, order.get(path) ?? 0)
    open.push(path)
    isOpen.add(path)
    for (const target of imports.get(path) ?? []) {
      if (!order.has(target)) visit(target)
      const reached = isOpen.has(target) ? Math.min(lowest.get(target) ?? 0, order.get(target) ?? 0) : Infinity
      lowest.set(path, Math.min(lowest.get(path) ?? 0, reached))
    }
    if (lowest.get(path) !== order.get(path)) return
    const component = open.splice(open.indexOf(path))
    for (const member of component) isOpen.delete(member)
    if (component.length > 1 || imports.get(path)?.includes(path)) cycles.push(component.sort())
  }
  for (const { path } of sources) if (!order.has(path)) visit(path)
  return cycles
}
