/** Commands in a chat with their meaning. */
export const chatCommands: Readonly<Record<string, string>> = {
  '/receipt': 'show the receipt of the last turn',
  '/context': 'show what the model would be shown now',
  '/facts': 'extract and show the facts that you have stated',
  '/forget': 'delete this session, a message (/forget m3) or a text (/forget TEXT)',
  '/help': 'list the commands',
  '/exit': 'end the chat',
}
