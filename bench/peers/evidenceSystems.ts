// Module for `threadkeep bench --system bench/peers/evidenceSystems.ts`.
import { loadPeers } from './systems.ts'

export default await loadPeers({ recentShare: 0 })
