/**
 * Commands of a Hermes on the relay, whose contract has no catalog: those that every version takes from a messenger, and that are not the
 * host operator's. A stop is the gateway's own.
 */
export const commands = [
  ['new', 'Start a new session', '[name]', 'Session'],
  ['retry', 'Answer the last message again', '', 'Session'],
  ['undo', 'Take back the last exchange', '', 'Session'],
  ['title', 'Name the session', '[name]', 'Session'],
  ['compress', 'Compress the conversation', '', 'Session'],
  ['approve', 'Allow what was asked', '[session|always]', 'Session'],
  ['deny', 'Refuse what was asked', '[reason]', 'Session'],
  ['background', 'Run a prompt in the background', '<prompt>', 'Session'],
  ['status', 'What is going on', '', 'Session'],
  ['model', 'Show or change the model', '[model]', 'Configuration'],
  ['reasoning', 'How hard the model thinks', '[level]', 'Configuration'],
  ['personality', 'Choose a personality', '[name]', 'Configuration'],
  ['commands', 'All commands of this Hermes', '[page]', 'Info'],
  ['help', 'Help', '', 'Info'],
  ['usage', 'Tokens and cost', '', 'Info'],
  ['insights', 'Usage over time', '[days]', 'Info'],
].map(([name, description, args_hint, category]) => ({
  name: `/${name}`,
  description: description!,
  ...(args_hint === '' ? {} : { args_hint: args_hint! }),
  category: category!,
}));
