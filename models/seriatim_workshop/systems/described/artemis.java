// Starts Apache ActiveMQ Artemis in this process, and tells over HTTP what its queues count:
// java -cp "lib/*" artemis.java STOMP_PORT HTTP_PORT FOLDER

import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import org.apache.activemq.artemis.core.config.Configuration;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.Queue;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;

class Artemis {
  public static void main(String[] arguments) throws Exception {
    Configuration configuration = new ConfigurationImpl();
    configuration.setPersistenceEnabled(false);
    configuration.setSecurityEnabled(false);
    configuration.setBrokerInstance(new java.io.File(arguments[2]));
    configuration.addAcceptorConfiguration(
        "stomp", "tcp://127.0.0.1:" + arguments[0] + "?protocols=STOMP");
    EmbeddedActiveMQ embedded = new EmbeddedActiveMQ();
    embedded.setConfiguration(configuration);
    embedded.start();
    HttpServer http =
        HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[1])), 0);
    http.createContext(
        "/",
        exchange -> {
          String name = exchange.getRequestURI().getPath().substring(1);
          Queue queue = embedded.getActiveMQServer().locateQueue(name);
          String counts = "0 0 0 0";
          if (queue != null) {
            counts =
                queue.getMessageCount()
                    + " " + queue.getDeliveringCount()
                    + " " + queue.getMessagesAcknowledged()
                    + " " + queue.getConsumerCount();
          }
          exchange.sendResponseHeaders(200, counts.length());
          exchange.getResponseBody().write(counts.getBytes());
          exchange.close();
        });
    http.start();
  }
}
