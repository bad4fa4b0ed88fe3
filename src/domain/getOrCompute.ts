/** What the map holds, made first if it is not there. */
export function kept<K, V>(
  map: { get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: K,
  make: (key: K) => V,
): V {
  const held = map.get(key)
  if (held !== undefined) return held
  const made = make(key)
  map.set(key, made)
  return made
}
