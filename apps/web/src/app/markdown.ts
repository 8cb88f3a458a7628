import DOMPurify from 'dompurify';
import { marked } from 'marked';

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
// Tags in the text are text: models write them to show them.
marked.use({ gfm: true, breaks: true, async: false, renderer: { html: ({ text }) => escaped(text) } });
DOMPurify.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName === 'A') {
    node.setAttribute('target', '_blank');
    node.setAttribute('rel', 'noopener noreferrer');
  }
});

/**
 * Markdown → safe HTML. Text comes from models and from other people: nothing in it may run, load, or submit anything.
 * Images are left out, since loading one tells its server who reads.
 */
export const renderMarkdown = (text: string): string =>
  DOMPurify.sanitize(marked.parse(text) as string, {
    FORBID_TAGS: ['img', 'style', 'form', 'input', 'button', 'iframe', 'video', 'audio', 'svg', 'math'],
    FORBID_ATTR: ['style'],
  });
