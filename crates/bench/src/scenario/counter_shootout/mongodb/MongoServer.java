// A server that speaks MongoDB's wire, in memory, at a port of 127.0.0.1: MongoServer.java PORT [as-is].
//
// The server answers findAndModify with the document it stores, not with a copy, and writes it to the wire after it has
// let go of its lock: the next increment can change an answer that is still to be sent. Here each answer is copied
// under a lock, unless "as-is" asks for the server as it comes.

import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.wire.message.MongoMessage;
import java.util.List;

class Main {
    public static void main(String[] arguments) {
        boolean asIs = arguments.length > 1 && arguments[1].equals("as-is");
        var backend = asIs ? new MemoryBackend() : new CopyingBackend();
        // The newest version that the server itself claims is older than what the driver of today talks to.
        backend.version(new MongoVersion() {
            @Override
            public List<Integer> getVersionArray() {
                return List.of(4, 4, 0);
            }

            @Override
            public int getWireVersion() {
                return 9;
            }
        });
        new MongoServer(backend).bind("127.0.0.1", Integer.parseInt(arguments[0]));
    }

    static class CopyingBackend extends MemoryBackend {
        @Override
        public synchronized Document handleMessage(MongoMessage message) {
            return super.handleMessage(message).cloneDeeply();
        }
    }
}
