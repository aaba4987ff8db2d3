// Starts ElasticMQ in this process: java -cp "lib/*" elasticmq.java PORT

import org.elasticmq.NodeAddress;
import org.elasticmq.rest.sqs.SQSRestServerBuilder;

class ElasticMQ {
  public static void main(String[] arguments) {
    int port = Integer.parseInt(arguments[0]);
    SQSRestServerBuilder.withInterface("127.0.0.1")
        .withPort(port)
        .withServerAddress(new NodeAddress("http", "127.0.0.1", port, ""))
        .start()
        .waitUntilStarted();
  }
}
