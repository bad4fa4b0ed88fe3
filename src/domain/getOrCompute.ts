/** Returns the value stored under a key; computes and stores it first if it is missing. */
export function getOrCompute<K, V>(
  map: { get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: K,
  compute: (key: K) => V,
): V {
  const existing = map.get(key)
  if (existing !== undefined) return existing
  const computed = compute(key)
  map.set(key, computed)
  return computed
}
